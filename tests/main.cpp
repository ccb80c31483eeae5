#define BOOST_TEST_MODULE iclflow
#include <boost/test/unit_test.hpp>
