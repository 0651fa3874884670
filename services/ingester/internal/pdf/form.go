package pdf

import (
	"strings"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
)

// HasForm reports that the file has fields to fill in.
func (f *File) HasForm() bool {
	kind, err := f.engine.FPDF_GetFormType(&requests.FPDF_GetFormType{Document: f.ref})
	return err == nil && kind.FormType != enums.FPDF_FORMTYPE_NONE
}

// Fields lists the fields of a page that hold a value. Passwords and push buttons hold none.
func (f *File) Fields(number int) ([]Field, error) {
	form, err := f.engine.GetForm(&requests.GetForm{Page: f.page(number)})
	if err != nil {
		var p Page
		p.Number = number
		return nil, f.pageFault(&p, err)
	}
	const most = 2000
	var out []Field
	for i := range form.Fields[:min(len(form.Fields), most)] {
		field := &form.Fields[i]
		if value := strings.TrimSpace(valueOf(field)); value != "" {
			out = append(out, Field{Name: labelOf(field), Value: value})
		}
	}
	return out, nil
}

// labelOf prefers what people see when they point at the field.
func labelOf(f *responses.FormField) string {
	if tip := strings.TrimSpace(f.ToolTip); tip != "" {
		return tip
	}
	return strings.TrimSpace(f.Name)
}

func valueOf(f *responses.FormField) string {
	switch f.Type {
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX:
		if f.IsChecked != nil && *f.IsChecked {
			return "✓"
		}
		return ""
	case enums.FPDF_FORMFIELD_TYPE_PUSHBUTTON, enums.FPDF_FORMFIELD_TYPE_SIGNATURE:
		return ""
	case enums.FPDF_FORMFIELD_TYPE_COMBOBOX, enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		return strings.Join(f.Values, ", ")
	}
	if f.Value == nil {
		return ""
	}
	return *f.Value
}
