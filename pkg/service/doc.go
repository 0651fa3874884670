// Package service is the life of a process: settings, log, telemetry, health, connections, signals and
// the end. The four services and `weir up` share it, so that a service's main is about twenty lines:
//
//	func main() {
//		cfg := embedder.DefaultConfig()
//		os.Exit(service.Main("embedder", &cfg, run))
//	}
//
//	func run(ctx context.Context, p *service.Process, cfg *embedder.Config) error {
//		nc, err := p.NATS(ctx)
//		if err != nil {
//			return err
//		}
//		svc, err := embedder.New(*cfg, embedder.Deps{NC: nc, Logger: p.Logger, Ready: p.Health.Ready})
//		if err != nil {
//			return err
//		}
//		return svc.Run(ctx)
//	}
//
// Main opens nothing by itself: a service that needs no database never calls Process.Postgres.
package service
