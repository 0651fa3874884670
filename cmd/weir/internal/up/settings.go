package up

import (
	"errors"
	"flag"
	"fmt"

	"github.com/weir-project/weir/pkg/service"
)

// load fills the settings of a service: what this run was told on its own command line or has made
// itself goes first, then the environment and the file.
func (r *runtime) load(settings ...service.Settings) error {
	fs := flag.NewFlagSet("services", flag.ContinueOnError)
	for _, s := range settings {
		s.Flags(fs)
	}
	given := map[string]bool{}
	for name, value := range map[string]string{
		"nats-url":           r.natsURL,
		"database-url":       r.databaseURL,
		"embedding-base-url": r.embeddingURL,
		"embedding-api-key":  r.opts.EmbeddingKey.Reveal(),
		"embedding-model":    r.opts.EmbeddingModel,
	} {
		// No model means that none is to be tried; an empty address means that nothing is known of one.
		if (value == "" && name != "embedding-model") || fs.Lookup(name) == nil {
			continue
		}
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		given[name] = true
	}
	if cache := fs.Lookup("parse-cache-dir"); cache != nil { // a default of ours, which the environment may change
		if err := cache.Value.Set(r.dir.Path("cache", "parse")); err != nil {
			return fmt.Errorf("parse-cache-dir: %w", err)
		}
	}
	if err := service.Fill(fs, given, r.opts.Getenv, r.opts.SettingsFile, true); err != nil {
		return err
	}
	var problems []error
	for _, s := range settings {
		problems = append(problems, s.Validate())
	}
	return errors.Join(problems...)
}
