// As moves.c, in Go, whose runtime makes its system calls without the C library.
package main

import "os"

func main() {
	data := make([]byte, 1<<20)
	if os.WriteFile(os.Args[1], data, 0o644) != nil {
		os.Exit(1)
	}
	if _, err := os.ReadFile(os.Args[1]); err != nil {
		os.Exit(2)
	}
	os.Exit(7)
}
