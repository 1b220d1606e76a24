// Package protect keeps the protected names of a workspace while a box may write the rest
// of it: what a box must not change stays as it is, and what it must not read is out of its
// sight, at any depth and whether it exists yet or not.
//
// A Finder knows where the protected names of a workspace are: it looks once, and is told
// of changes by the kernel. A Cover is what one run needs: mounts that the driver makes in
// the box, and placeholders for names that do not exist, since only what exists can be
// mounted over. Prepare makes the placeholders, Done takes them away and looks at what
// protected names the run has left elsewhere, which no mount can stop: a repository that
// was made during the run is kept when it runs nothing by itself; what would is moved into
// a quarantine and reported. Nothing is deleted but placeholders.
//
// Placeholders are on disk for the time of the run: an empty directory where people expect
// a directory, otherwise a socket that nobody listens on. Git neither shows nor adds either
// of them, and they have no content that could be lost. A .gitattributes is a directory,
// too: git warns about a socket there. While they come and go the directory that holds them
// gets a new time of change.
//
// Several processes may protect the same directory at once: locks say who needs
// placeholders there, and the last one removes them, whoever made them.
//
// What is not looked at: directories that package managers fill (node_modules and the like;
// see skipped), what lies in .git besides the names that git obeys, and, in a workspace of
// more directories than the bound, those farthest from its root, which a Cover's Notes
// name.
//
// Mounts hold against the box and not against other programs of the host: when one of those
// renames or replaces a protected name during a run, the kernel takes the mount away, and
// Done treats the name as one that appeared. Whatever appears while a run is going is taken
// for its doing, unless another run that is going may write it. So is what is changed in what
// came to be in the row of overlapping runs that it continues. What the host mounts in a
// workspace while a run goes on, that run does not see: what is there is not taken for its
// doing, and what it left beneath is not looked at, which Done says.
package protect
