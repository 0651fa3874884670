package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"path"
	"strings"
)

// relation is one line of an Office part's relationships.
type relation struct {
	target string // entry name
	kind   string // last element of its type, such as "slide"
}

// relations gives the relationships of a part by id. A part without any has none.
func (a *archive) relations(ctx context.Context, part string) (map[string]relation, error) {
	out := map[string]relation{}
	dir, base := path.Split(part)
	err := a.walk(ctx, dir+"_rels/"+base+".rels", func(e xml.StartElement) error {
		if e.Name.Local != "Relationship" || local(e, "TargetMode") == "External" || len(out) > a.limits.ZipEntries {
			return nil
		}
		target := strings.ReplaceAll(local(e, "Target"), `\`, "/")
		if strings.HasPrefix(target, "/") {
			target = strings.TrimPrefix(target, "/")
		} else {
			target = path.Join(dir, target)
		}
		out[local(e, "Id")] = relation{target: path.Clean(target), kind: path.Base(local(e, "Type"))}
		return nil
	}, ignoreEnd, ignoreText)
	if errors.Is(err, errNoEntry) {
		err = nil
	}
	return out, err
}

// of gives the first relation of a kind, by id, so that the choice is always the same.
func relationOf(all map[string]relation, kind string) (relation, bool) {
	found, id := relation{}, ""
	for k, r := range all {
		if r.kind == kind && (id == "" || k < id) {
			found, id = r, k
		}
	}
	return found, id != ""
}

func ignoreEnd(string) error { return nil }
func ignoreText([]byte)      {}

// relationID is the id in a relationships namespace, which plain "id" attributes stand beside.
func relationID(e xml.StartElement) string {
	for _, a := range e.Attr {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}
	return ""
}

// coreTitle is the title of an Office document's properties, "" without one.
func coreTitle(archive *archive, l Limits) (string, error) {
	return elementText(archive, l, "docProps/core.xml", "title")
}

// elementText is the text of the first element of a name, "" without one.
func elementText(archive *archive, l Limits, entry, name string) (string, error) {
	in, err := archive.open(entry)
	if errors.Is(err, errNoEntry) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	const most = 1000
	title, inside, seen := strings.Builder{}, false, false
	err = walkXML(context.Background(), in, l,
		func(e xml.StartElement) error {
			inside = e.Name.Local == name && !seen
			seen = seen || inside
			return nil
		},
		func(string) error { inside = false; return nil },
		func(t []byte) {
			if inside && title.Len() < most {
				title.Write(t)
			}
		})
	return collapse(title.String()), err
}
