package trust

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unicode/utf16"
)

// keystore is Java's file of certificates that it trusts, in the format (JKS) that every
// version reads. The password is the one that all of them have, and guards nothing: whoever
// reads the file knows what is in it.
func keystore(certificates [][]byte) ([]byte, error) {
	be := binary.BigEndian
	b := be.AppendUint32(nil, 0xfeedfeed)
	b = be.AppendUint32(b, 2) // version
	b = be.AppendUint32(b, uint32(len(certificates)))
	text := func(s string) { b = append(be.AppendUint16(b, uint16(len(s))), s...) }
	for i, c := range certificates {
		if len(c) > math.MaxInt32 {
			return nil, fmt.Errorf("certificate %d is too large", i)
		}
		b = be.AppendUint32(b, 2) // a certificate that is trusted
		text(fmt.Sprintf("%d", i))
		b = be.AppendUint64(b, uint64(time.Now().UnixMilli()))
		text("X.509")
		b = append(be.AppendUint32(b, uint32(len(c))), c...)
	}
	h := sha1.New() // the format's own, against chance
	for _, c := range utf16.Encode([]rune("changeit")) {
		h.Write(be.AppendUint16(nil, c))
	}
	h.Write([]byte("Mighty Aphrodite")) // which the format has here
	h.Write(b)
	return h.Sum(b), nil
}
