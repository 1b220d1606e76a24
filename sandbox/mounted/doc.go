// Package mounted knows what is mounted where on this host, and notices when that changes.
package mounted
