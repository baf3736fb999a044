# Hashes the sources of the compiler into a C++ file.
# cmake -DSOURCE_DIR=src -DFOLDERS=base,bits,... -DOUTPUT=build_id.cpp -P build_id.cmake
# Names and contents only, sorted: the same sources give the same id, wherever and whenever.
string(REPLACE "," ";" folders "${FOLDERS}")
set(all "")
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.cpp ${SOURCE_DIR}/${folder}/*.h ${SOURCE_DIR}/${folder}/*.def)
  list(FILTER files EXCLUDE REGEX "_(test|fuzz)[.]cpp$|/testing/")
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 ${SOURCE_DIR}/${file} hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 32 id)
file(WRITE ${OUTPUT} "#include \"compile/build_id.h\"\n
namespace skillet::compile {
std::string_view build_id() { return \"${id}\"; }
}  // namespace skillet::compile
")
