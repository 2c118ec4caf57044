package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// labelImage marks images that this program has made.
const labelImage = sandbox.Brand + ".image"

// ImportImage makes an image of a root file system, given as a tar archive, under a name. The name is moved from an
// image that had it. It returns the image's id.
func (e *Engine) ImportImage(ctx context.Context, name string, root io.Reader) (id string, err error) {
	c, err := e.connect()
	if err != nil {
		return "", err
	}
	answer, err := c.ImageImport(ctx, client.ImageImportSource{Source: root, SourceName: "-"}, name, client.ImageImportOptions{
		Message: "made by toolward sandbox image build",
		Changes: []string{"LABEL " + labelImage + "=1", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `CMD ["sleep","infinity"]`},
	})
	if err != nil {
		return "", explain(ctx, "make the image "+name, err)
	}
	defer answer.Close()
	for told := json.NewDecoder(answer); ; {
		var line struct{ Status, Error string }
		if err := told.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", explain(ctx, "make the image "+name, err)
		}
		if line.Error != "" {
			return "", sandbox.Errorf(sandbox.CodeFailed, "make the image %s: %s", name, line.Error)
		}
		id = strings.TrimSpace(line.Status)
	}
	if !strings.HasPrefix(id, "sha256:") {
		return "", sandbox.Errorf(sandbox.CodeFailed, "make the image %s: the container engine did not say that it has it", name)
	}
	return id, nil
}

// RemoveImage takes a name from an image, and removes the image if it has no other. One that does not exist is no error.
func (e *Engine) RemoveImage(ctx context.Context, name string) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	if _, err := c.ImageRemove(ctx, name, client.ImageRemoveOptions{}); err != nil && !isNotFound(err) {
		return explain(ctx, "remove the image "+name, err)
	}
	return nil
}
