package embedding

// CutVectors is cutVectors.
var CutVectors = cutVectors
