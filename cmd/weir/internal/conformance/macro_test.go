package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// expand replaces the macros in a body. Without any it is returned as it stands, to the byte.
//
//	{"$text": "x", "times": 128}              a text of 128 x, and what "then" holds
//	{"$list": V, "times": 257}                a list of 257 V
//	{"$nest": "notAll", "times": 17, "in": V}  V within 17 operators
//	{"$paragraphs": "part {n}", "times": 500}  a text of 500 paragraphs, numbered in the same way
//	{"$many": V, "times": 25}                  a list of 25 V, in whose texts {n} is 01, 02 …
func expand(body json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(body, []byte(`"$`)) {
		return body, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // numbers keep their notation
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	v, err := expanded(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(v)
	return out.Bytes(), err
}

func expanded(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case []any:
		for i := range v {
			if v[i], err = expanded(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		for k := range v {
			if v[k], err = expanded(v[k]); err != nil {
				return nil, err
			}
		}
		return macro(v)
	}
	return v, nil
}

func macro(m map[string]any) (any, error) {
	number, _ := m["times"].(json.Number)
	times, _ := number.Int64()
	name := ""
	for k := range m {
		if strings.HasPrefix(k, "$") {
			name = k
		}
	}
	if name == "" {
		return m, nil
	}
	if times < 1 || times > 100_000 {
		return nil, fmt.Errorf("macro %s: times %q", name, number)
	}
	n := int(times)
	switch name {
	case "$text":
		s, _ := m[name].(string)
		then, _ := m["then"].(string)
		return strings.Repeat(s, n) + then, nil
	case "$list":
		list := make([]any, n)
		for i := range list {
			list[i] = m[name]
		}
		return list, nil
	case "$nest":
		op, _ := m[name].(string)
		v := m["in"]
		for range n {
			v = map[string]any{op: []any{v}}
		}
		return v, nil
	case "$paragraphs":
		texts := make([]string, n)
		for i := range texts {
			texts[i], _ = numbered(m[name], fmt.Sprintf("%02d", i+1)).(string)
		}
		return strings.Join(texts, "\n\n"), nil
	case "$many":
		list := make([]any, n)
		for i := range list {
			list[i] = numbered(m[name], fmt.Sprintf("%02d", i+1))
		}
		return list, nil
	}
	return nil, fmt.Errorf("there is no macro %s", name)
}

// numbered returns a copy of a value with {n} replaced in its texts.
func numbered(v any, n string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{n}", n)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = numbered(v[i], n)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = numbered(v[k], n)
		}
		return out
	}
	return v
}
