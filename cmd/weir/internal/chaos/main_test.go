package chaos_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service/embednats"
)

// The test binary is also the NATS server's program: these variables make it one.
const (
	natsDirEnv  = "WEIR_CHAOS_NATS_DIR"
	natsPortEnv = "WEIR_CHAOS_NATS_PORT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(natsDirEnv); dir != "" {
		if err := serveNATS(dir, os.Getenv(natsPortEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// plentyOfStore lets every stream reserve its maximum, whatever the disk of the test machine.
const plentyOfStore = 1 << 42

func serveNATS(dir, port string) error {
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := embednats.Start(ctx, embednats.Config{
		Dir: dir, Port: n, MaxStoreBytes: plentyOfStore,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer s.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-s.Done():
		return fmt.Errorf("the nats server stopped")
	}
}
