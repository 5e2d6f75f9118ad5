# Sanitizers have to see the library, the tests and the link alike, so they are set for the whole tree. -O1 takes a third of the
# time to compile; what the optimiser makes of the code is tested in the plain build.
if(ISOFOLD_SANITIZE)
  add_compile_options(-fsanitize=${ISOFOLD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${ISOFOLD_SANITIZE})
endif()
