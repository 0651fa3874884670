package embedding

import "time"

// interactiveShare is the part of a rate limit's burst that batch work leaves to queries.
const interactiveShare = 0.1

// burstWindow is how much of a minute's allowance may be used at once.
const burstWindow = 10 * time.Second

// bucket is a token bucket that may go below zero: what was let through on an estimate is paid for
// afterwards. A nil bucket is without limit. Not safe for concurrent use.
type bucket struct {
	perSecond float64
	capacity  float64
	level     float64
	at        time.Time
}

func newBucket(perMinute int, now time.Time) *bucket {
	if perMinute == 0 {
		return nil
	}
	rate := float64(perMinute) / 60
	capacity := max(1, rate*burstWindow.Seconds())
	return &bucket{perSecond: rate, capacity: capacity, level: capacity, at: now}
}

func (b *bucket) refill(now time.Time) {
	if now.After(b.at) {
		b.level = min(b.capacity, b.level+now.Sub(b.at).Seconds()*b.perSecond)
		b.at = now
	}
}

// take removes n; a negative n gives back.
func (b *bucket) take(n int, now time.Time) {
	if b == nil {
		return
	}
	b.refill(now)
	b.level = min(b.capacity, b.level-float64(n))
}

// delay is how long until n may be taken with the share of the burst left over. What is larger than
// the burst may go when the bucket is full.
func (b *bucket) delay(n int, share float64, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.refill(now)
	missing := min(b.capacity, float64(n)+share*b.capacity) - b.level
	if missing <= 1e-9 {
		return 0
	}
	return time.Duration(missing/b.perSecond*float64(time.Second)) + time.Millisecond
}
