# cmake -D BUILD=<build tree> -D CONSUMER=<this folder> -D COMPILER=<c++> -D LAUNCHER=<ccache or empty> -D GENERATOR=<name> -P install.cmake
set(scratch ${BUILD}/tests/package)
file(REMOVE_RECURSE ${scratch})
foreach(step IN ITEMS
        "--install;${BUILD};--prefix;${scratch}/prefix"
        "-S;${CONSUMER};-B;${scratch}/build;-G;${GENERATOR};-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER};-DCMAKE_PREFIX_PATH=${scratch}/prefix"
        "--build;${scratch}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${scratch}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
