package parse

import "testing"

func TestNumbersAreShownAsTheWorkbookShowsThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code  string
		value float64
		want  string
	}{
		{"General", 0, "0"},
		{"General", 1234567, "1234567"},
		{"General", 0.1 + 0.2, "0.3"},
		{"General", -2.5, "-2.5"},
		{"General", 1e20, "1E+20"},
		{"0", 2.5, "3"},
		{"0%", 0.025, "3%"},
		{"0.00", 1.005, "1.01"},
		{"0", 999.5, "1000"},
		{"0.0", 9.96, "10.0"},
		{"0.00", 2.345, "2.35"},
		{"00000", 42, "00042"},
		{"#,##0", 1234567.8, "1,234,568"},
		{"#,##0.00", 0.5, "0.50"},
		{"#", 0, ""},
		{"#.##", 0.5, ".5"},
		{"0.##", 3, "3"},
		{"0%", 0.256, "26%"},
		{"0.0%", 1.5, "150.0%"},
		{"0.00E+00", 12345, "1.23E+04"},
		{"#,##0,", 1234567, "1,235"},
		{"0.0,,\" M\"", 12_345_678, "12.3 M"},
		{"$#,##0.00;[Red]($#,##0.00)", -5, "($5.00)"},
		{"0;-0;\"none\"", 0, "none"},
		{"0.0;(0.0)", -1.25, "(1.3)"},
		{"[>=1000]#,##0\"k\";0", 5, "5"},
		{"[>=1000]0,\"k\";0", 5000, "5k"},
		{"000-00-0000", 123456789, "123-45-6789"},
		{"# ?/?", 1.5, "1 1/2"},
		{"# ??/??", 0.3125, "5/16"},
		{"?/8", 0.5, "4/8"},
		{"# ?/?", 2, "2"},
		{"[$€-407] #,##0.00", 1234.5, "€ 1,234.50"},
		{"0\\ \"m\"", 3, "3 m"},
		{"@", 7, "7"},
		{"General\" km\"", 2.5, "2.5 km"},
		{"yyyy-mm-dd", 45366, "2024-03-15"},
		{"d/m/yy", 45366, "15/3/24"},
		{"dddd, d mmmm yyyy", 45366, "Friday, 15 March 2024"},
		{"mmm-yy", 45366, "Mar-24"},
		{"h:mm AM/PM", 0.75, "6:00 PM"},
		{"h:mm", 0.75, "18:00"},
		{"hh:mm:ss", 0.999999, "00:00:00"},
		{"mm:ss.0", 1.0 / 86400 * 61.5, "01:01.5"},
		{"[h]:mm", 1.5, "36:00"},
		{"[mm]:ss", 0.05, "72:00"},
		{"yyyy\"年\"m\"月\"d\"日\"", 45366, "2024年3月15日"},
		{"yyyy-mm-dd", 1, "1900-01-01"},
		{"yyyy-mm-dd", -5, "-5"},
		{"yyyy-mm-dd", 1e12, "1000000000000"},
		{"m/d/yyyy h:mm", 45366.5, "3/15/2024 12:00"},
		{";;;", 5, ""},
	} {
		if got := newNumberFormat(test.code, false).format(test.value); got != test.want {
			t.Errorf("%v as %q: got %q, want %q", test.value, test.code, got, test.want)
		}
	}
	if got := newNumberFormat("yyyy-mm-dd", true).format(0); got != "1904-01-01" {
		t.Errorf("the first day counted from 1904: got %q", got)
	}
}

func FuzzNumberFormat(f *testing.F) {
	for _, code := range []string{"General", "#,##0.00;[Red]-0%", "[h]:mm:ss.00", "# ?/??", "[$€-407]0E+0;;@", "_(* #,##0_)", "\\", "\"", "["} {
		f.Add(code, 45366.75)
		f.Add(code, -0.5)
	}
	f.Fuzz(func(t *testing.T, code string, value float64) {
		first := newNumberFormat(code, false).format(value)
		if second := newNumberFormat(code, false).format(value); first != second {
			t.Errorf("%v as %q: %q, then %q", value, code, first, second)
		}
	})
}
