help([[
Pioscope shows where the I/O time of programs on clusters goes, and what would fix it.
  pioscope record -o run.pio -- mpiexec -n 8 ./yours
  pioscope explain run.pio
]])
whatis("Name: pioscope")
whatis("Version: 0.1.0")
whatis("Description: records, explains and predicts parallel I/O, and applies MPI-IO strategies")

-- As it was installed: make install PREFIX=/opt/pioscope
local root = "/opt/pioscope"
prepend_path("PATH", pathJoin(root, "bin"))
