package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// matchAt follows a path and matches what it leads to.
func matchAt(v any, path string, want json.RawMessage) error {
	var m any
	if err := json.Unmarshal(want, &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return follow(v, path, strings.Split(strings.ReplaceAll(path, "[", ".["), "."), m)
}

func follow(v any, path string, parts []string, m any) error {
	if len(parts) == 0 {
		return match(v, true, path, m)
	}
	part, rest := parts[0], parts[1:]
	inner, isIndex := strings.CutPrefix(part, "[")
	if !isIndex {
		if part == "" {
			return follow(v, path, rest, m)
		}
		o, _ := v.(map[string]any)
		next, ok := o[part]
		if !ok {
			return match(nil, false, path, m)
		}
		return follow(next, path, rest, m)
	}
	list, ok := v.([]any)
	if !ok {
		return match(nil, false, path, m)
	}
	inner = strings.TrimSuffix(inner, "]")
	if inner == "*" {
		if len(list) == 0 {
			return fmt.Errorf("%s: the list is empty", path)
		}
		for i := range list {
			if err := follow(list[i], fmt.Sprintf("%s (%d)", path, i), rest, m); err != nil {
				return err
			}
		}
		return nil
	}
	i, err := strconv.Atoi(inner)
	if err != nil || i < 0 || i >= len(list) {
		return match(nil, false, path, m)
	}
	return follow(list[i], path, rest, m)
}

// match compares a value with a literal, or with an object of one of the keys of matchers.
func match(v any, there bool, path string, m any) error {
	o, isObject := m.(map[string]any)
	for name, check := range matchers {
		want, ok := o[name]
		if !isObject || !ok {
			continue
		}
		if !there && name != "$absent" {
			return fmt.Errorf("%s is absent", path)
		}
		if !check(v, there, want) {
			return fmt.Errorf("%s is %v, want %s %v", path, v, name, want)
		}
		return nil
	}
	got, _ := json.Marshal(v)
	want, _ := json.Marshal(m)
	if !there || string(got) != string(want) {
		return fmt.Errorf("%s is %s (there: %v), want %s", path, got, there, want)
	}
	return nil
}

// matchers are the ways to compare besides equality.
var matchers = map[string]func(v any, there bool, want any) bool{
	"$absent": func(_ any, there bool, want any) bool { return there != (want == true) },
	"$type": func(v any, _ bool, want any) bool {
		return typeOf(v) == want || want == "number" && typeOf(v) == "integer"
	},
	"$has": func(v any, _ bool, want any) bool {
		s, isText := v.(string)
		w, _ := want.(string)
		return isText && strings.Contains(s, w)
	},
	"$near": func(v any, _ bool, want any) bool {
		a, ok := v.(float64)
		b, ok2 := want.(float64)
		return ok && ok2 && math.Abs(a-b) <= storeTolerance
	},
	"$in": func(v any, _ bool, want any) bool {
		list, _ := want.([]any)
		return slices.ContainsFunc(list, func(w any) bool { return reflect.DeepEqual(v, w) })
	},
	"$set": func(v any, _ bool, want any) bool {
		a, _ := v.([]any)
		b, _ := want.([]any)
		has := func(list []any, x any) bool {
			return slices.ContainsFunc(list, func(y any) bool { return reflect.DeepEqual(x, y) })
		}
		outside := func(of, list []any) bool { return slices.ContainsFunc(of, func(x any) bool { return !has(list, x) }) }
		return len(a) == len(b) && !outside(a, b) && !outside(b, a)
	},
	"$atLeast": func(v any, _ bool, want any) bool { return ordered(v, want) >= 0 },
	"$atMost":  func(v any, _ bool, want any) bool { return ordered(want, v) >= 0 },
	"$length": func(v any, _ bool, want any) bool {
		n := -1
		switch v := v.(type) {
		case []any:
			n = len(v)
		case map[string]any:
			n = len(v)
		case string:
			n = len([]rune(v))
		}
		return float64(n) == want
	},
}

func ordered(a, b any) int {
	x, ok := a.(float64)
	y, ok2 := b.(float64)
	if !ok || !ok2 {
		return -1
	}
	return cmp.Compare(x, y)
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "unknown"
}
