package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// checkTimeout bounds one readiness check.
const checkTimeout = 2 * time.Second

// Health answers the questions "is it alive" and "is it ready". The zero value is alive and not ready.
// It is safe for concurrent use.
type Health struct {
	// OnReady is called by every Ready; nil: nothing. Set it before the first use.
	OnReady func()

	mu     sync.Mutex
	ready  bool
	checks []namedCheck
}

type namedCheck struct {
	name  string
	check func(context.Context) error
}

// Check adds a condition of readiness: check returns nil when it holds.
func (h *Health) Check(name string, check func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, namedCheck{name, check})
}

// Ready says that the start is over. NotReady takes it back, at the beginning of the stop.
func (h *Health) Ready() {
	h.set(true)
	if h.OnReady != nil {
		h.OnReady()
	}
}

// NotReady says that no new work should come here.
func (h *Health) NotReady() { h.set(false) }

func (h *Health) set(ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = ready
}

// Problems returns what keeps the process from being ready, by the name of the check; none means
// ready.
func (h *Health) Problems(ctx context.Context) map[string]string {
	h.mu.Lock()
	ready, checks := h.ready, h.checks[:len(h.checks):len(h.checks)]
	h.mu.Unlock()
	problems := map[string]string{}
	if !ready {
		problems["start"] = "starting or stopping"
	}
	for _, c := range checks {
		checkCtx, cancel := context.WithTimeout(ctx, checkTimeout)
		if err := c.check(checkCtx); err != nil {
			problems[c.name] = err.Error()
		}
		cancel()
	}
	return problems
}

// Handler serves /healthz (200 while the process lives), /readyz (200 or 503 with the problems as
// JSON) and /metrics from metrics, which may be nil.
func (h *Health) Handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		problems := h.Problems(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if len(problems) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		// A client that went away is its own business.
		_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(problems) == 0, "problems": problems})
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return mux
}

// ServeHTTP serves handler on addr until stop is called, which waits for the end.
func ServeHTTP(addr string, handler http.Handler, logger *slog.Logger) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on http-addr %s: %w", addr, err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("health server ended", "err", err)
		}
	}()
	logger.Info("health server listens", "addr", listener.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close()
		}
		<-done
	}, nil
}
