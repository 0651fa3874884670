package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weir-project/weir/cmd/weir/internal/eval"
	"github.com/weir-project/weir/pkg/fusion"
	"github.com/weir-project/weir/pkg/messages"
)

// sweepFlags are the variants to try, as text.
type sweepFlags struct {
	on            bool
	n, shares, ks []string
}

// maxSweep is the longest list that services give.
const maxSweep = 1000

func (f *sweepFlags) grid() (eval.Grid, error) {
	g := eval.DefaultGrid()
	if f.n != nil {
		g.Counts = nil
	}
	for _, text := range f.n {
		n1, n2, two := strings.Cut(text, "/")
		if !two {
			n2 = n1
		}
		a, errA := strconv.Atoi(n1)
		b, errB := strconv.Atoi(n2)
		if errA != nil || errB != nil || a < 1 || b < 1 || a > maxSweep || b > maxSweep {
			return g, Usagef("--sweep-n: %q is not a number from 1 to %d, or two with / between", text, maxSweep)
		}
		g.Counts = append(g.Counts, eval.Counts{N1: a, N2: b})
	}
	if f.shares != nil {
		g.Shares = nil
	}
	for _, text := range f.shares {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return g, Usagef("--sweep-weights: %q is not a number from 0 to 1", text)
		}
		g.Shares = append(g.Shares, x)
	}
	if f.ks != nil {
		g.Ks = nil
	}
	for _, text := range f.ks {
		k, err := strconv.Atoi(text)
		if err != nil || k < 1 || k > messages.MaxRRFK {
			return g, Usagef("--sweep-k: %q is not a number from 1 to %d", text, messages.MaxRRFK)
		}
		g.Ks = append(g.Ks, k)
	}
	return g, nil
}

// sweep asks each query of the sets once and compares all variants on the answers.
func (e *evaluation) sweep(ctx context.Context, dirs []string, g eval.Grid) error {
	variants := g.Variants()
	var sets []eval.Judged
	for _, dir := range dirs {
		judged, err := e.collect(ctx, dir, eval.Largest(variants))
		if err != nil {
			return err
		}
		sets = append(sets, judged)
	}
	report, err := eval.Sweep(sets, variants, 0)
	if err != nil {
		return err
	}
	return e.s.Print(report, func(w io.Writer) error { return eval.SweepTable(w, report) })
}

func (e *evaluation) collect(ctx context.Context, dir string, n int) (eval.Judged, error) {
	set, kb, err := e.prepare(ctx, dir)
	if err != nil {
		return eval.Judged{}, err
	}
	var info messages.KBInfo
	if err := e.s.Request(ctx, kb, messages.OpKBGet, messages.KBRef{}, &info); err != nil {
		return eval.Judged{}, err
	}
	if info.Embedding == nil || info.IndexType != messages.IndexTypeHybrid {
		return eval.Judged{}, fmt.Errorf("sweep %s: %w", kb, eval.ErrNotHybrid)
	}
	pools, err := eval.Collect(ctx, set, fusion.Metric(info.Embedding.Metric), n, e.f.concurrency, func(ctx context.Context, in messages.RetrieveRequest) (messages.RetrieveReply, error) {
		return search(ctx, e.s, kb, in)
	})
	if err != nil {
		return eval.Judged{}, fmt.Errorf("ask %s: %w", set.Name, err)
	}
	e.refusals(set, pools.Refused)
	if pools.Approximate {
		e.display.Line("%s: a list came out of an approximate index: shorter lists may differ a little from what the service gives.", set.Name)
	}
	return eval.Judged{Set: set, KB: kb, Pools: pools}, nil
}
