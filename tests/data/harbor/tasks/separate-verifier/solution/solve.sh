#!/bin/bash
mkdir -p out; echo ready >out/state; touch rest out/scratch.tmp
