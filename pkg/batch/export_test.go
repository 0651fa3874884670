package batch

// Waiting is how many calls wait for a batch.
func (j *Joiner[In, Out]) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting)
}
