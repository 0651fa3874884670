// Package service is the life of a process: settings, log, telemetry, health, connections, signals and
// the end. The four services and `weir up` share it, so that a service's main is about twenty lines:
//
//	func main() {
//		cfg := embedder.DefaultConfig()
//		os.Exit(service.Main("embedder", &cfg, service.Serve(embedder.Open)))
//	}
//
// where Open asks the process for what the service needs:
//
//	func Open(ctx context.Context, p *service.Process, cfg Config) (*Service, error) {
//		lent, err := p.Lend(ctx)
//		if err != nil {
//			return nil, err
//		}
//		return New(cfg, Deps{Lent: lent})
//	}
//
// Main opens nothing by itself: a service that needs no database never calls Process.Postgres.
package service
