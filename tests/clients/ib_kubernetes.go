// SPDX-License-Identifier: GPL-2.0-or-later

// Loads the UFM plugin of ib-kubernetes, as its daemon does, and makes the calls that it reads from its standard input:
//
//	validate | list | add P_KEY GUID ... | remove P_KEY GUID ...
//
// Each call is answered with one line of JSON: {"error": "...", "guids": {GUID: P_Key}}, without an error if there was none. The
// configuration of the plugin comes from the environment (UFM_USERNAME and so on).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/Mellanox/ib-kubernetes/pkg/sm"
	"github.com/Mellanox/ib-kubernetes/pkg/sm/plugins"
)

type answer struct {
	Error string            `json:"error,omitempty"`
	Guids map[string]string `json:"guids,omitempty"`
}

func load(path string) (plugins.SubnetManagerClient, error) {
	initialize, err := sm.NewPluginLoader().LoadPlugin(path, sm.InitializePluginFunc)
	if err != nil {
		return nil, err
	}
	return initialize()
}

// change adds or removes GUIDs.
func change(call func(int, []net.HardwareAddr) error, words []string) error {
	if len(words) < 1 {
		return fmt.Errorf("no P_Key")
	}
	pKey, err := strconv.ParseInt(words[0], 0, 0)
	if err != nil {
		return err
	}
	var guids []net.HardwareAddr
	for _, word := range words[1:] {
		guid, err := net.ParseMAC(word)
		if err != nil {
			return err
		}
		guids = append(guids, guid)
	}
	return call(int(pKey), guids)
}

func perform(client plugins.SubnetManagerClient, words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no call")
	}
	switch words[0] {
	case "validate":
		return nil, client.Validate()
	case "list":
		return client.ListGuidsInUse()
	case "add":
		return nil, change(client.AddGuidsToPKey, words[1:])
	case "remove":
		return nil, change(client.RemoveGuidsFromPKey, words[1:])
	}
	return nil, fmt.Errorf("no such call: %s", words[0])
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: ib_kubernetes PLUGIN"))
	}
	client, err := load(os.Args[1])
	if err != nil {
		fail(err)
	}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		var a answer
		a.Guids, err = perform(client, strings.Fields(input.Text()))
		if err != nil {
			a.Error = err.Error()
		}
		line, err := json.Marshal(a)
		if err != nil {
			fail(err)
		}
		fmt.Println(string(line))
	}
	if err := input.Err(); err != nil {
		fail(err)
	}
}
