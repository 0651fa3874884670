package service

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger of the given format (text or json) and level (debug, info, warn or error)
// on w.
func NewLogger(w io.Writer, format, levelName string) (*slog.Logger, error) {
	l, err := level(levelName)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format must be text or json, not %q", format)
}

func level(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("must be debug, info, warn or error, not %q", name)
}
