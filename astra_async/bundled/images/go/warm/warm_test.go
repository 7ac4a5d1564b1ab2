package warm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestWarm(t *testing.T) {
	var lock sync.Mutex
	lock.Lock()
	defer lock.Unlock()
	text, err := json.Marshal([]any{math.Pi, time.Duration(1), strconv.Itoa(1)})
	words := strings.Fields(fmt.Sprint(bytes.TrimSpace(text), errors.Is(err, nil), regexp.MustCompile("a")))
	sort.Strings(words)
	if reflect.DeepEqual(words, nil) {
		t.Fatal(words)
	}
}
