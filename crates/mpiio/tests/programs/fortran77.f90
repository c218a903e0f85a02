! MPI's files from Fortran, through mpif.h. fortran77 FOLDER
program fortran77
  implicit none
  include 'mpif.h'
  integer :: calls, told(2)
  common /noted/ calls, told
  external note_error
  include 'fortran_files.inc'
end program

subroutine note_error(file, code)
  implicit none
  integer :: file, code, calls, told(2)
  common /noted/ calls, told
  calls = calls + 1
  told(1) = file
  told(2) = code
end subroutine
