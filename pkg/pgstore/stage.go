package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	Generation                 Generation
	Run                        int
	Staged                     bool // chunks are staged already: only publish again what follows
	Chunks                     int  // how many, once staged
	Begun                      bool // this call moved it from Pending to Indexing
	// From is the live generation, whose chunks of this version may stand in for parsing; nil but for builds of
	// another generation.
	From *Generation
}

// BeginParse moves a version to Indexing and returns what is needed to parse it. ErrStale when there is
// nothing left to do.
func (s *Store) BeginParse(ctx context.Context, ref messages.Ref) (Version, error) {
	if ref.Build {
		return s.beginBuild(ctx, ref)
	}
	var v Version
	var hash []byte
	var chunks *int
	err := s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(query("async_commit")) // where it is lost, the version is Pending and its message still there
		b.Queue(query("parse_begin"), ref.DocKey, ref.Version, ref.KBID).QueryRow(func(row pgx.Row) error {
			return row.Scan(&v.Title, &v.OSSKey, &v.ContentType, &hash, &v.Blob.SizeBytes, &chunks, &v.Run,
				&v.Generation.ID, &v.Generation.Space, &v.Generation.Parser, &v.Generation.Chunking, &v.Generation.Analyzer, &v.Begun)
		})
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrStale
	}
	if err != nil {
		return v, fmt.Errorf("begin parse of %s: %w", ref.DocID, err)
	}
	copy(v.Blob.SHA256[:], hash)
	if chunks != nil {
		v.Staged, v.Chunks = true, *chunks
	}
	return v, nil
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
	err = s.pipelined(ctx, func(conn *pgxpool.Conn) error {
		staged, generations, err := openStaging(ctx, conn, st)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		if !staged {
			queueStaging(b, st, generations, &reused)
		}
		b.Queue("COMMIT")
		return conn.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("stage %s: %w", st.Ref.DocID, err)
	}
	return reused, nil
}

// openStaging begins the transaction, locks the version, and tells whether it is staged already and which
// generations hold vectors of its space.
func openStaging(ctx context.Context, conn *pgxpool.Conn, st Staging) (staged bool, generations []int64, err error) {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(query("async_commit")) // a crash empties the staged tables anyway
	lock := query("stage_lock")
	if st.Ref.Build {
		lock = query("build_stage_lock")
	}
	b.Queue(lock, st.Ref.DocKey, st.Ref.Version, st.Ref.Generation).QueryRow(func(row pgx.Row) error {
		var chunks *int
		err := row.Scan(&chunks)
		staged = chunks != nil
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrStale
		}
		return err
	})
	if st.Space != nil {
		b.Queue(query("generations_of_space"), st.Ref.KBID, st.Space).Query(func(rows pgx.Rows) (err error) {
			generations, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			return err
		})
	}
	return staged, generations, conn.SendBatch(ctx, b).Close()
}

// queueStaging queues the rows of a version.
func queueStaging(b *pgx.Batch, st Staging, generations []int64, reused *int) {
	ref, tokens := st.Ref, 0
	ordinals, hashes := make([]int, len(st.Chunks)), make([][]byte, len(st.Chunks))
	for i := range st.Chunks {
		c := &st.Chunks[i]
		ordinals[i], hashes[i] = c.Ordinal, c.Hash[:]
		tokens += c.Tokens
	}
	st.queuePacked(b)
	for _, g := range generations {
		b.Queue(reuseFrom(g), ref.Generation, ref.DocKey, ref.Version, ordinals, hashes).Exec(func(tag pgconn.CommandTag) error {
			*reused += int(tag.RowsAffected())
			return nil
		})
	}
	if ref.Build {
		finishBuild(b, st, ordinals, tokens)
		return
	}
	b.Queue(query("stage_finish"), ref.DocKey, ref.Version, ref.Generation, len(st.Chunks), tokens, orNone(st.Warnings), st.Title)
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
