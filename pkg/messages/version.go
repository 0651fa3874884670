package messages

// Version is the release these contracts belong to, as services show it to discovery.
const Version = "0.1.0"
