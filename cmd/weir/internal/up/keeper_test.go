package up

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-project/weir/pkg/service/statedir"
	"github.com/weir-project/weir/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testGroup(t *testing.T) *group {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	dir, err := statedir.Locate(func(string) string { return home })
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Create(); err != nil {
		t.Fatal(err)
	}
	logger := testkit.Logger(t)
	pol := policy{first: time.Millisecond, most: 4 * time.Millisecond, stable: time.Hour, deaths: 3, ready: testkit.Patience}
	return newGroup(logger, &record{dir: dir, logger: logger}, pol, testkit.Patience)
}

func partNamed(t *testing.T, g *group, name string) statedir.Part {
	t.Helper()
	run, err := g.record.dir.ReadRun()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range run.Parts {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no part %s in %+v", name, run.Parts)
	return statedir.Part{}
}

func TestAPartThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	lives := 0
	again := make(chan struct{})
	k := g.begin("x", levelService, func(ctx context.Context, ready func(statedir.Part)) error {
		ready(statedir.Part{PID: 7})
		switch lives++; lives {
		case 1:
			return errors.New("boom")
		case 2:
			panic("bang")
		}
		close(again)
		<-ctx.Done()
		return nil
	})
	if err := g.await(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	<-again
	p := partNamed(t, g, "x")
	if p.State != statedir.StateReady || p.Restarts != 2 || p.PID != 7 || !strings.Contains(p.Error, "bang") {
		t.Errorf("record: got %+v, want ready after two restarts with the last error", p)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if p := partNamed(t, g, "x"); p.State != statedir.StateStopped {
		t.Errorf("state after the stop: got %s", p.State)
	}
}

func TestAPartThatNeverWorksIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	lives := 0
	k := g.begin("x", levelService, func(context.Context, func(statedir.Part)) error {
		lives++
		return errors.New("no such directory")
	})
	err := g.await(t.Context(), k)
	if err == nil || !strings.Contains(err.Error(), "x: no such directory") || lives != 1 {
		t.Errorf("got %v after %d lives, want the error after one", err, lives)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
}

func TestAPartThatDiesTooOftenEndsTheRun(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	lives := 0
	g.begin("x", levelService, func(_ context.Context, ready func(statedir.Part)) error {
		lives++
		ready(statedir.Part{})
		return nil // ending by itself is dying too
	})
	err := <-g.fatal
	if err == nil || lives != g.policy.deaths+1 {
		t.Errorf("got %v after %d lives, want an error after %d", err, lives, g.policy.deaths+1)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
}

func TestAPartThatIsNotReadyInTimeIsGivenUp(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	g.policy.ready = time.Millisecond
	k := g.begin("x", levelService, func(ctx context.Context, _ func(statedir.Part)) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err := g.await(t.Context(), k); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("got %v, want that it was not ready", err)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
}

func TestServicesStopBeforeWhatTheyUse(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	var mu sync.Mutex
	var order []string
	part := func(name string) work {
		return func(ctx context.Context, ready func(statedir.Part)) error {
			ready(statedir.Part{})
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}
	}
	ks := []*keeper{
		g.begin("service", levelService, part("service")),
		g.begin("nats", levelBus, part("nats")),
		g.begin("postgres", levelStore, part("postgres")),
	}
	if err := g.await(t.Context(), ks...); err != nil {
		t.Fatal(err)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if want := []string{"service", "postgres", "nats"}; !slices.Equal(order, want) {
		t.Errorf("order: got %v, want %v", order, want)
	}
}

func TestAServiceThatHangsDoesNotKeepPostgresFromStopping(t *testing.T) {
	t.Parallel()
	g := testGroup(t)
	g.grace = time.Millisecond
	release, stopped := make(chan struct{}), false
	hung := g.begin("service", levelService, func(_ context.Context, ready func(statedir.Part)) error {
		ready(statedir.Part{})
		<-release
		return nil
	})
	db := g.begin("postgres", levelStore, func(ctx context.Context, ready func(statedir.Part)) error {
		ready(statedir.Part{})
		<-ctx.Done()
		stopped = true
		return nil
	})
	if err := g.await(t.Context(), hung, db); err != nil {
		t.Fatal(err)
	}
	if err := g.stop(); err == nil || !strings.Contains(err.Error(), "service did not stop") || !stopped {
		t.Errorf("got %v, postgres stopped %v; want the hung service named and postgres stopped", err, stopped)
	}
	close(release)
	<-hung.done
}
