// Package parse turns the bytes of one document into normalised text with provenance.
//
// The content decides the format. Among text formats, where the content cannot tell, the declared
// media type decides, then the file name. A declared type that the content contradicts is a warning,
// a format we do not read is UNSUPPORTED_MEDIA_TYPE.
//
// The result is one normalised text (UTF-8, NFC, LF line ends, no control characters but tab and LF)
// and blocks whose byte ranges partition it. All offsets downstream refer to that text.
//
// Every failure that belongs to the document is a *messages.Error and permanent. Readers keep
// caps on size, depth, entries and produced text, and run in the process they are called in: package
// worker gives each document one, because a hostile file can end a process in ways nothing can recover
// from.
//
// To add a format: one file with its reader, and one line in formats.
package parse
