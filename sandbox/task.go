package sandbox

import "github.com/toolward/toolward/sandbox/task"

// What is asked of a sandbox and what it answers has a package of its own, which is all that the program inside needs.
type (
	Command       = task.Command
	Size          = task.Size
	Segment       = task.Segment
	Redirect      = task.Redirect
	RedirectKind  = task.RedirectKind
	ExitStatus    = task.ExitStatus
	FileType      = task.FileType
	FileInfo      = task.FileInfo
	Identity      = task.Identity
	Entry         = task.Entry
	WriteOptions  = task.WriteOptions
	RemoveOptions = task.RemoveOptions
	ListOptions   = task.ListOptions
	Stats         = task.Stats
	Port          = task.Port
	Code          = task.Code
	Error         = task.Error
)

// The kinds of redirections, the types of files and the codes of errors.
const (
	RedirectNone    = task.RedirectNone
	RedirectIn      = task.RedirectIn
	RedirectOut     = task.RedirectOut
	RedirectAppend  = task.RedirectAppend
	RedirectCopy    = task.RedirectCopy
	RedirectText    = task.RedirectText
	TypeUnknown     = task.TypeUnknown
	TypeRegular     = task.TypeRegular
	TypeDirectory   = task.TypeDirectory
	TypeSymlink     = task.TypeSymlink
	TypeOther       = task.TypeOther
	CodeUnavailable = task.CodeUnavailable
	CodeNotFound    = task.CodeNotFound
	CodeReadOnly    = task.CodeReadOnly
	CodeEscape      = task.CodeEscape
	CodeHardlink    = task.CodeHardlink
	CodeNotRegular  = task.CodeNotRegular
	CodeTooLarge    = task.CodeTooLarge
	CodeTimeout     = task.CodeTimeout
	CodeOOM         = task.CodeOOM
	CodeConflict    = task.CodeConflict
	CodeConfig      = task.CodeConfig
	CodeChanged     = task.CodeChanged
	CodeExists      = task.CodeExists
	CodeDenied      = task.CodeDenied
	CodeFull        = task.CodeFull
	CodeDirectory   = task.CodeDirectory
	CodeFailed      = task.CodeFailed
)

// Errorf makes an [*Error] with a code. The last argument is its cause if it is an error.
func Errorf(code Code, format string, args ...any) *Error { return task.Errorf(code, format, args...) }

// CodeOf returns the code of an error: CodeFailed if it has none, "" without an error.
func CodeOf(err error) Code { return task.CodeOf(err) }
