package work

import "github.com/weir-project/weir/pkg/embedding"

// Waiting is how many calls of a space wait to be joined.
func Waiting(j *Joined, space embedding.Space) int { return j.of(space).Waiting() }
