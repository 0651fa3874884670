package pdf

import "golang.org/x/sys/unix"

// reserve gives zeroed bytes that take no memory until they are written; none when there is no room.
func reserve(n int) []byte {
	space, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return space
}

func release(space []byte) {
	if space != nil {
		_ = unix.Munmap(space) // it was ours: nothing else can be wrong with it
	}
}
