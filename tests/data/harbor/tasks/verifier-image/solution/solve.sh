#!/bin/bash
echo ready >state
