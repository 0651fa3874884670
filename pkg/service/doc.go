// Package service is the life of a process: settings, log, telemetry, health, connections, signals and
// the end. The four services and `weir up` share it, so that a service's main is about twenty lines:
//
//	type settings struct{ embedder.Config }
//
//	func main() {
//		os.Exit(service.Main("embedder", &settings{}, run))
//	}
//
//	func run(ctx context.Context, p *service.Process, s *settings) error {
//		nc, err := p.NATS(ctx)
//		if err != nil {
//			return err
//		}
//		svc, err := embedder.New(s.Config, embedder.Deps{NC: nc, Logger: p.Logger})
//		if err != nil {
//			return err
//		}
//		p.Health.Ready()
//		return svc.Run(ctx)
//	}
//
// Main opens nothing by itself: a service that needs no database never calls Process.Postgres.
package service
