package tool

// Impossible is why a call could not be made whatever anybody says of it, and which of its
// arguments is at fault. It is found before deciding, so that nobody is asked about it.
type Impossible struct{ Argument, Why string }

func (i *Impossible) Error() string { return i.Argument + ": " + i.Why }
