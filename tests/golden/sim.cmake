# Recorded jobs run on the simulators: skillet_golden_sim, and a test with the small captures of tests/captures/sim_golden.
if(TARGET skillet_sim_vivante AND TARGET skillet_golden_case AND TARGET skillet_ref)
  skillet_library(golden_replay SOURCES sim_replay.cpp sim_layers.cpp sim_memory.cpp sim_case.cpp sim_reference.cpp
    LIBS skillet_golden_case skillet_sim skillet_sim_vivante skillet_capture skillet_frontend_tflite skillet_ref)
  target_include_directories(skillet_golden_replay PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  add_executable(skillet_golden_sim sim_main.cpp)
  target_link_libraries(skillet_golden_sim PRIVATE skillet_golden_replay nlohmann_json::nlohmann_json)
  skillet_test(golden_replay SOURCES sim_test.cpp LIBS skillet_golden_replay)
  skillet_test(golden_coefficients_v8 SOURCES coefficients_v8_test.cpp LIBS skillet_golden_replay skillet_drivers_vivante)
endif()
