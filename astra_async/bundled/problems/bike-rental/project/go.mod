module rental

go 1.19
