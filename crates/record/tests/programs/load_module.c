/* Loads a module for itself alone, as Python does, and runs it. argv: the module, its argument. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(const char *) = module == NULL ? NULL : (int (*)(const char *))dlsym(module, "run");
    if (run == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return run(argv[2]);
}
