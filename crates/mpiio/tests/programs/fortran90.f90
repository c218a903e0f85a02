! MPI's files from Fortran, through the module `mpi`. fortran90 FOLDER
module noted
  implicit none
  integer :: calls, told(2)
contains
  subroutine note_error(file, code)
    integer :: file, code
    calls = calls + 1
    told = [file, code]
  end subroutine
end module

program fortran90
  use mpi
  use noted
  implicit none
  include 'fortran_files.inc'
end program
