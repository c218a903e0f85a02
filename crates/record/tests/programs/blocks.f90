! Every rank writes and reads blocks of a shared file, and a file of its own with the language's own I/O.
program blocks
  use mpi
  implicit none
  integer :: error, rank, ranks, file, i
  integer(kind=MPI_OFFSET_KIND) :: offset
  double precision :: values(1000)
  character(len=200) :: name
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, name)
  values = rank
  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error)
  do i = 0, 9
     offset = int(i * ranks + rank, MPI_OFFSET_KIND) * 8000
     call MPI_File_write_at(file, offset, values, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error)
  end do
  offset = int(rank, MPI_OFFSET_KIND) * 8000
  call MPI_File_write_at_all(file, offset, values, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error)
  call MPI_File_read_at_all(file, offset, values, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error)
  call MPI_File_close(file, error)
  write (name, '(a,i0)') 'own', rank
  open (unit=10, file=trim(name), form='unformatted')
  do i = 1, 20
     write (10) values
  end do
  close (10)
  call MPI_Finalize(error)
end program blocks
