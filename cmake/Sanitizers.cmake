# Sanitizers have to see the library, the tests and the link alike, so they are set for the whole tree.
if(ISOFOLD_SANITIZE)
  add_compile_options(-fsanitize=${ISOFOLD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${ISOFOLD_SANITIZE})
endif()
