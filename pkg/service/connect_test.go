package service_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/service"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestOpenPostgresNamesItself(t *testing.T) {
	t.Parallel()
	url := service.SecretURL(testkit.PostgresURL(t))
	pool, err := service.OpenPostgres(t.Context(), service.PostgresConfig{URL: url, Name: "weir-x", MaxConns: 3}, testkit.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var name string
	if err := pool.QueryRow(t.Context(), "SHOW application_name").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if name != "weir-x" {
		t.Errorf("application_name: got %s, want weir-x", name)
	}
	if got := pool.Config().MaxConns; got != 3 {
		t.Errorf("most connections: got %d, want 3", got)
	}
}

func TestConnectionsThatASettingLeavesOpenAreTheServices(t *testing.T) {
	t.Parallel()
	url := service.SecretURL(testkit.PostgresURL(t))
	for _, c := range []struct {
		set, asked int
		want       int32
	}{{0, 0, 10}, {0, 34, 34}, {5, 34, 5}} {
		p := &service.Process{Config: service.Config{DatabaseURL: url, DatabaseConns: c.set}, Logger: testkit.Logger(t), Health: &service.Health{}}
		pool, err := p.PostgresFor(t.Context(), c.asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.Config().MaxConns; got != c.want {
			t.Errorf("set %d, asked for %d: got %d connections, want %d", c.set, c.asked, got, c.want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeReachedIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	discard := slog.New(slog.DiscardHandler)
	_, err := service.OpenPostgres(t.Context(), service.PostgresConfig{URL: "postgres://u:hunter2@127.0.0.1:1/x"}, discard)
	wantUnreachable(t, err)
	for _, url := range []service.SecretURL{
		"nats://u:hunter2@127.0.0.1:1", "nats://hunter2@127.0.0.1:1", "nats://u:%zzhunter2@127.0.0.1:1", "nats://u:a hunter2@127.0.0.1:1",
		"nats://127.0.0.1:1,nats://u:hunter2@127.0.0.1:port",
	} {
		_, err = service.OpenNATS(t.Context(), service.NATSConfig{URL: url, Wait: 200 * time.Millisecond}, discard)
		wantUnreachable(t, err)
	}
}

func TestTheAddressOfAConnectionHidesItsToken(t *testing.T) {
	t.Parallel()
	s, _ := testkit.NATSListening(t)
	for _, secret := range []string{"hunter2", "u:hunter2"} {
		url := strings.Replace(s.ClientURL(), "://", "://"+secret+"@", 1)
		nc, err := service.OpenNATS(t.Context(), service.NATSConfig{URL: service.SecretURL(url), Name: "x"}, testkit.Logger(t))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if got := service.ConnectedURL(nc).String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "127.0.0.1") {
			t.Errorf("got %s, want the address without %s", got, secret)
		}
	}
}

func wantUnreachable(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error: got %v, want one that names the address and hides the password", err)
	}
}

func TestOpenNATSIsConnected(t *testing.T) {
	t.Parallel()
	s, _ := testkit.NATSListening(t)
	nc, err := service.OpenNATS(t.Context(), service.NATSConfig{URL: service.SecretURL(s.ClientURL()), Name: "x"}, testkit.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if !nc.IsConnected() {
		t.Error("not connected")
	}
}
