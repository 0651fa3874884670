package embedding

// CutVectors is cutVectors.
var CutVectors = cutVectors

// AskForFloats has a client ask for plain floats, as for a server that does not send base64.
func (c *Client) AskForFloats() { c.floats.Store(true) }
