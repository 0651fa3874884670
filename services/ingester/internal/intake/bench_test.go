package intake_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weir-project/weir/pkg/messages"
	"github.com/weir-project/weir/pkg/pgstore"
	"github.com/weir-project/weir/services/ingester/internal/intake"
)

// quickStore answers at once that a submit is a new version.
type quickStore struct{ intake.Store }

func (quickStore) LoadKB(_ context.Context, tenant, name string) (pgstore.KB, error) {
	return pgstore.KB{ID: 17, Tenant: tenant, Name: name, Generation: pgstore.Generation{ID: 4}}, nil
}

func (quickStore) AcceptSubmit(context.Context, pgstore.Submission) (pgstore.Acceptance, error) {
	return pgstore.Acceptance{Outcome: pgstore.Accepted, DocKey: 99, Version: 1}, nil
}

type noUploads struct{ intake.Uploads }

func (noUploads) Open(context.Context, string, string) (io.ReadCloser, error) {
	return nil, intake.ErrNoUpload
}

// BenchmarkSubmit is what a submit of 13 KB costs beside the database and the bus.
func BenchmarkSubmit(b *testing.B) {
	in := intake.New(quickStore{}, noUploads{}, slog.New(slog.DiscardHandler), 1<<20)
	text := strings.Repeat("The cover ends with the month in which the pump was sold.\n", 13_000/57)
	body, err := messages.Encode(messages.Submit{DocID: "handbook-17", ContentType: "text/markdown", Text: &text})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for seq := 0; b.Loop(); seq++ {
		_, err := in.Submit(b.Context(), intake.From{
			Tenant: "acme", KB: "manuals", Source: fmt.Sprintf("js/1764460800123456789/%d", seq), SubmitID: "WEIR_DOCS:17", Body: body,
			Order: pgstore.Order{At: time.Unix(1764460800, 0)}, Header: func(string) string { return "" },
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
