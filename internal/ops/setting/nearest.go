package setting

// Nearest returns the word that a misspelled one most likely means: the first with the fewest edits, at most two
// and at most one for every three characters. It returns an empty text if no word is near.
func Nearest(typed string, known []string) (meant string) {
	least := min(2, len(typed)/3) + 1
	for _, word := range known {
		if n := edits(typed, word); n < least {
			meant, least = word, n
		}
	}
	return meant
}

// edits returns how many characters to insert, remove, replace or swap with the next one to turn a into b.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1) // rows[i][j] is for the first i characters of a and the first j of b
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(a)][len(b)]
}
