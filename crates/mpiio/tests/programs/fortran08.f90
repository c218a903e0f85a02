! MPI's files from Fortran, through the module `mpi_f08`. fortran08 FOLDER
module noted
  use mpi_f08
  implicit none
  integer :: calls = 0, code_told
  type(MPI_File) :: file_told
contains
  subroutine note_error(file, code)
    type(MPI_File) :: file
    integer :: code
    calls = calls + 1
    file_told = file
    code_told = code
  end subroutine
end module

program fortran08
  use mpi_f08
  use noted
  implicit none
  type(MPI_Errhandler) :: handler
  type(MPI_File) :: fh
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  integer :: rank, ranks, count, i, ierr, data(100), back(100), errors
  integer(MPI_OFFSET_KIND) :: place, size
  character(len=200) :: folder
  errors = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, folder)
  call MPI_File_open(MPI_COMM_WORLD, trim(folder)//'/f08', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
  if (ierr /= MPI_SUCCESS) errors = errors + 1
  data = [(1000 * rank + i, i = 1, 100)]
  place = 400 * rank
  call MPI_File_iwrite_at_all(fh, place, data, 100, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, status, ierr)
  call MPI_Get_count(status, MPI_INTEGER, count, ierr)
  if (count /= 100) errors = errors + 1
  call MPI_File_read_at_all(fh, place, back, 100, MPI_INTEGER, status, ierr)
  if (any(back /= data)) errors = errors + 1
  call MPI_File_write_ordered(fh, data, 100, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_get_position_shared(fh, place, ierr)
  if (place /= 400 * ranks) errors = errors + 1
  call MPI_File_create_errhandler(note_error, handler)
  call MPI_File_set_errhandler(fh, handler)
  call MPI_Errhandler_free(handler)
  call MPI_File_call_errhandler(fh, MPI_ERR_QUOTA)
  if (calls /= 1 .or. file_told /= fh .or. code_told /= MPI_ERR_QUOTA) errors = errors + 1
  call MPI_File_get_size(fh, size, ierr)
  if (size /= 400 * ranks) errors = errors + 1
  call MPI_File_close(fh, ierr)
  if (fh /= MPI_FILE_NULL) errors = errors + 1
  call MPI_Allreduce(MPI_IN_PLACE, errors, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    if (errors == 0) print '(a)', 'all is as MPI says'
    if (errors /= 0) print *, errors, 'checks failed'
  end if
  call MPI_Finalize(ierr)
end program
