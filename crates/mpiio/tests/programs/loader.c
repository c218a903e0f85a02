/* Has no MPI itself: loads a library that has, privately, as Python loads its extension modules.
 *
 * loader LIBRARY ARGUMENTS...
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  int (*work)(int, char **) = library != NULL ? (int (*)(int, char **))dlsym(library, "work") : NULL;
  if (work == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return work(count - 1, arguments + 1);
}
