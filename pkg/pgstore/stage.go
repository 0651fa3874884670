package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-project/weir/pkg/messages"
)

// ErrStale says that work came too late: the version was overtaken, finished, deleted, or its knowledge
// base is gone. The message is done.
var ErrStale = errors.New("the version is no longer being worked on")

// Version is what parsing needs of an accepted version.
type Version struct {
	Title, OSSKey, ContentType string
	Blob                       Blob
	Content                    []byte // a short one; nil: read the blob
	Generation                 Generation
	Run                        int
	Staged                     bool // chunks are staged already: only publish again what follows
	Chunks                     int  // how many, once staged
	Begun                      bool // this call moved it from Pending to Indexing
	Split                      bool // its lines become documents of their own
	// From is the live generation, whose chunks of this version may stand in for parsing; nil but for builds of
	// another generation.
	From *Generation
}

// inlineContent is the size in bytes up to which a content comes with its version.
const inlineContent = 64 << 10

// BeginParse moves a version to Indexing and returns what is needed to parse it. ErrStale when there is
// nothing left to do.
func (s *Store) BeginParse(ctx context.Context, ref messages.Ref) (Version, error) {
	all, err := s.BeginParses(ctx, []messages.Ref{ref})
	if err != nil {
		return Version{}, err
	}
	if all[0] == nil {
		return Version{}, ErrStale
	}
	return *all[0], nil
}

// BeginParses is BeginParse for several in one transaction; nil stands for a stale one. Builds have a
// statement of their own each.
func (s *Store) BeginParses(ctx context.Context, refs []messages.Ref) ([]*Version, error) {
	out := make([]*Version, len(refs))
	var submits []messages.Ref
	var places []int
	for i, ref := range refs {
		if !ref.Build {
			submits, places = append(submits, ref), append(places, i)
			continue
		}
		v, err := s.beginBuild(ctx, ref)
		if err == nil {
			out[i] = &v
		} else if !errors.Is(err, ErrStale) {
			return nil, err
		}
	}
	if len(submits) == 0 {
		return out, nil
	}
	begun, err := s.beginSubmits(ctx, submits)
	for n, v := range begun {
		out[places[n]] = v
	}
	return out, err
}

func (s *Store) beginSubmits(ctx context.Context, refs []messages.Ref) ([]*Version, error) {
	keys, versions, kbs := make([]int64, len(refs)), make([]int64, len(refs)), make([]int64, len(refs))
	for i, ref := range refs {
		keys[i], versions[i], kbs[i] = ref.DocKey, ref.Version, ref.KBID
	}
	out := make([]*Version, len(refs))
	err := s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(query("lookup_plans"))
		b.Queue(query("async_commit")) // where it is lost, the version is Pending and its message still there
		b.Queue(query("parse_begin"), keys, versions, kbs, inlineContent).Query(func(rows pgx.Rows) error {
			return scanEach(rows, out, scanVersion)
		})
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("begin parse of %s: %w", described(refs, "versions", func(r messages.Ref) string { return r.DocID }), err)
	}
	return out, nil
}

func scanVersion(into **Version, row pgx.Rows, i *int64) error {
	v := new(Version)
	var hash []byte
	var chunks *int
	err := row.Scan(i, &v.Title, &v.OSSKey, &v.ContentType, &hash, &v.Blob.SizeBytes, &chunks, &v.Run,
		&v.Generation.ID, &v.Generation.Space, &v.Generation.Parser, &v.Generation.Chunking, &v.Generation.Analyzer, &v.Begun, &v.Content, &v.Split)
	if err != nil {
		return err
	}
	copy(v.Blob.SHA256[:], hash)
	if chunks != nil {
		v.Staged, v.Chunks = true, *chunks
	}
	*into = v
	return nil
}

// StagedChunk is one chunk ready for indexing.
type StagedChunk struct {
	Ordinal          int
	PageFrom, PageTo int // 0: the format has no pages
	Tokens           int
	HeadingPath      []string
	Context, Content string
	Hash             [32]byte // of the exact string for the model
	Lex              TSVector
	LexLen           int
	Origin           messages.Origin
}

// Staging is a parsed and chunked version.
type Staging struct {
	Ref      messages.Ref
	Title    string // found in the content
	Space    *messages.Space
	Warnings []string
	Chunks   []StagedChunk
}

// Stage writes the chunks of a version with the vectors that its knowledge base knows already, and how
// many chunks to expect, in one transaction. Staging a second time changes nothing. It returns how many
// vectors were reused; ErrStale when the version is no longer being worked on.
func (s *Store) Stage(ctx context.Context, st Staging) (reused int, err error) {
	all, err := s.StageAll(ctx, []Staging{st})
	if err != nil {
		return 0, err
	}
	if all[0].Stale {
		return 0, ErrStale
	}
	return all[0].Reused, nil
}

// stagingOf is what a staging is of.
type stagingOf struct{ key, version, generation int64 }

func (st Staging) identity() stagingOf {
	return stagingOf{st.Ref.DocKey, st.Ref.Version, st.Ref.Generation}
}

// Staged is what became of one version.
type Staged struct {
	Reused int  // vectors; 0 for a version that was staged before
	Stale  bool // it is no longer being worked on
}

// StageAll is Stage for several in one transaction, or in several: one of versions and one of builds, each of which locks
// its documents in order, and more where one version occurs more than once. After an error, which may be that of one of
// them, run them again one by one.
func (s *Store) StageAll(ctx context.Context, stagings []Staging) ([]Staged, error) {
	out := make([]Staged, len(stagings))
	for _, round := range rounds(stagings, Staging.identity) {
		for _, builds := range []bool{false, true} {
			w := stagingWrites{out: out, builds: builds}
			for _, i := range round {
				w.add(&stagings[i], i)
			}
			if len(w.all) == 0 {
				continue
			}
			if err := s.pipelined(ctx, func(conn *pgxpool.Conn) error { return w.run(ctx, conn) }); err != nil {
				return nil, fmt.Errorf("stage %s: %w", described(stagings, "versions", func(st Staging) string { return st.Ref.DocID }), err)
			}
		}
	}
	return out, nil
}

func orNone(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// reuseFrom is the statement that takes known vectors from one generation. The generation stands in the text:
// planning over all partitions would cost more than the look-up. It does not name the partition, on which the
// ingester's role has no rights.
func reuseFrom(generation int64) string {
	return strings.Replace(query("stage_reuse"), "WHERE ", "WHERE c.generation = "+strconv.FormatInt(generation, 10)+" AND ", 1)
}

// EmbedWork returns the messages that ask for the vectors a staged version lacks; none when it lacks
// nothing. They are the same each time, but for what has arrived.
func (s *Store) EmbedWork(ctx context.Context, ref messages.Ref) ([]messages.EmbedWork, error) {
	var space *messages.Space
	if err := s.pool.QueryRow(ctx, query("generation_space"), ref.Generation).Scan(&space); err != nil {
		return nil, fmt.Errorf("read space of generation %d: %w", ref.Generation, err)
	}
	if space == nil {
		return nil, nil
	}
	texts, err := s.StagedTexts(ctx, ref)
	if err != nil {
		return nil, err
	}
	chunks := make([]messages.EmbedChunk, len(texts))
	have := make(map[int]bool, len(texts))
	for i, t := range texts {
		chunks[i] = messages.EmbedChunk{Ordinal: t.Ordinal, Hash: t.Hash, Text: space.PassageText(t.Context, t.Content)}
		have[t.Ordinal] = t.Known
	}
	return messages.PackEmbed(ref, *space, chunks, func(ordinal int) bool { return have[ordinal] }), nil
}
