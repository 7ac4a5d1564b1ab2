#!/bin/bash
for number in 1 2 3 4; do echo $((number * number)); done >squares.txt
