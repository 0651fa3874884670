package service

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// ShowJSON is the text of a flag whose value is a list; secrets in it show as they marshal. An empty list is "".
func ShowJSON[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	out, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// ReadJSON reads the text of a flag whose value is a list of what: JSON, or @ and the name of a file with it. Unknown keys
// are an error, as is anything behind the list.
func ReadJSON[T any](what, text string) ([]T, error) {
	data := []byte(text)
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	var list []T
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if dec.More() {
		return nil, fmt.Errorf("read %s: there is more behind the list", what)
	}
	return list, nil
}
